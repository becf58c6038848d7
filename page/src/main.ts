import "./style.css";
import type { LiveData, ReportData } from "./data";
import { showLive } from "./live";
import { showReport } from "./report";

const data = JSON.parse(document.getElementById("data")?.textContent ?? "") as ReportData | LiveData;
const app = document.getElementById("app") as HTMLElement;
if (data.kind === "live") showLive(data, app);
else showReport(data, app);
